"""One page with charts that stands by itself: no script, nothing from elsewhere."""
