"""What AWS refuses without looking at a queue, one file a subject.

Each check takes an action's input from the wire and gives what the action works with: the input itself, or a value of
`checked` where the check has learned more. The type of a queue stands in its name, so what FIFO queues alone may or
must be given is checked here too.
"""
