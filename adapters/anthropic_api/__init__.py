"""The Messages API through the vendor's SDK: requests, streams, failures, model limits."""
