"""What the AWS doors have in common: the Query protocol and its XML, shapes, errors, ARNs, what a message carries.

No door is known here; a door hands in what only it knows, such as its namespace and its words for a wrong value.
"""
