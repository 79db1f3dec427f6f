"""Objects of the API, which are not documents: CBOR and Protobuf as Kubernetes writes them."""
