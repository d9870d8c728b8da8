"""Accounts and access keys: how many, how soon a server knows of them, and what is written of who was refused."""

# --- accounts and access keys ---------------------------------------------------------------------------------------

ACCOUNTS = 1_000
"""Accounts in one store. Every server looks for the queues of each of them every few seconds."""

ACCESS_KEYS = 1_000
"""Access keys in one store, those that are disabled included. They lie in one partition, which a server reads whole
when one of them has changed."""

KEY_PATTERNS = 50
"""Patterns of queue names that one key is limited to, and as many actions: all of them are looked through for every
request."""

KEYRING_SECONDS = 2.0
"""How often a server looks whether keys have changed, one small read: so long a key that was disabled still works."""

KEYRING_LOOK_SECONDS = 0.5
"""A key that a server does not know is looked for at once, unless it has just looked for one: then so much later, for
all who wait. Unknown ids cost the store two small reads a second, however many are sent."""

# --- the audit log --------------------------------------------------------------------------------------------------

AUDIT_REFUSALS = 100
AUDIT_SECONDS = 10.0
"""Refusals that are written one by one in so many seconds; the others are counted, and their number is written. So
nobody without a key can fill a disk with them."""

# --- policies -------------------------------------------------------------------------------------------------------

POLICIES_KEPT = 1_024
"""Policies that are kept as they were understood: each is some KiB, and reading one anew takes some 50 µs."""
