"""Where pods find what the platform runs for them."""

ETCD = "etcd.etcd.svc:2379"
