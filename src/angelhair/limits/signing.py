"""What a signature may claim, and what is kept of the keys that signatures are made with."""

# --- signatures -----------------------------------------------------------------------------------------------------

SIGNATURE_SKEW_SECONDS = 900
"""How far the clock of whoever signed may be from this server's, to either side: what Amazon allows. Until then a
request that somebody has seen can be sent again."""

PRESIGNED_SECONDS = 604_800
"""How long a signature in a URL may be valid, at most: a week, as at Amazon, where its signing key ends too."""

QUERY_PARAMETERS = 500
"""Parameters in the query of a signed request, which are sorted before anybody knows who sent them: a batch of ten
messages with ten attributes each has 360."""

ACCESS_KEY_ID_LENGTH = 128
"""Characters of an access key's id: what Amazon allows. Those that Angelhair makes have 20."""

REGION_LENGTH = 64
"""Characters of a region's name. It may be any: the longest that there is has 14."""

SIGNING_KEYS = 1_024
"""Derived signing keys that are kept, one for each key, day, region and service that has been seen: each saves four
HMACs a request and takes less than 1 KiB."""
