"""What a leader does for as long as it leads: the same for a harvest and whatever else is led."""
