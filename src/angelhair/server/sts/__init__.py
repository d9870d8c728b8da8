"""The STS door: the one action of Amazon's STS that tools ask for before anything else, GetCallerIdentity."""
