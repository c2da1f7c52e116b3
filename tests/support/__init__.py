"""What the tests share: servers, backends, worker processes and other helpers."""
