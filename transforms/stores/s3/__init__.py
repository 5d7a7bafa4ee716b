"""S3, and whatever speaks its protocol, over boto3: requests, and uploads in parts."""
