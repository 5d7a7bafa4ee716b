"""Object stores: S3 and Google Cloud Storage behind one contract. No Beam on this floor.

    names          store_url        s3://bucket/key and gs://bucket/key
    the contract   object_store     what a store does, and what it says of an object
                   connect          the one client of this process for a bucket
    S3             s3_store         over boto3;   s3_upload   parts of a multipart upload
                                    ── s3_client    requests, and what their answers mean
    GCS            gcs_store        over google-cloud-storage;   gcs_upload   chunks that are composed
                                    ── gcs_client   gcs_batch
    below both     bucket           what requests to a bucket have in common
                   retries          which failures are tried again, and when
                   failures         what is said of the others, in one line
                   streamed         bytes that come in any number become pieces that are uploaded side by side
                   read_ahead       ranges of one object, several at once, in order
                                    ── object_reader    an object as an open file

Credentials come from where each client looks for them by itself (environment, profile, instance): nothing here takes,
keeps or shows any. A client is imported when the first URL of its store is met.
"""
