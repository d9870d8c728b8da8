"""What the actions do: one function each, from a checked input to a result, through the service.

`call` is what each of them is given, `kept` what a queue of SQS has beyond what the engine knows, `carried` what a
message has. The table of them all is in `door`.
"""
