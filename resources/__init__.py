"""Resources: what assets, ops and sensors are configured with."""
