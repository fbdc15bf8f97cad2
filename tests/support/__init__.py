"""What tests share: fixtures, helpers, and in `programs` what tests start as processes."""
