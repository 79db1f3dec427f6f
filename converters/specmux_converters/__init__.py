"""Swagger 2.0 to OpenAPI v3, and OpenAPI v3 documents as JSON, Protobuf and CBOR. Pure and synchronous."""
