"""What changed in the documents that were published: compared in the worker, logged, kept, and streamed."""
