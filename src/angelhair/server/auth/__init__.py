"""Who sent this request, and may they: AWS Signature Version 4, verified; access keys, and what they are limited to.

Pure: no input or output, no event loop, no clock and no randomness. What is kept between two requests is `SigningKeys`.
"""

from angelhair.server.auth.access_keys import AccessKey, allowed, new_id, new_secret
from angelhair.server.auth.canonical import normal_path
from angelhair.server.auth.refusals import Refused, not_allowed
from angelhair.server.auth.signing import SigningKeys
from angelhair.server.auth.verifying import Identity, verify

__all__ = [
    "AccessKey", "Identity", "Refused", "SigningKeys",
    "allowed", "new_id", "new_secret", "normal_path", "not_allowed", "verify",
]
