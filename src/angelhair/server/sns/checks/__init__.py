"""All that SNS refuses without looking at a topic, in its own words."""
