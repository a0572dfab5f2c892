"""What a platform on EKS needs of AWS: network, control plane, nodes, storage, registries, identity.

One component per file; `eks.py` puts them in order, and `limits.py` knows from the stack file alone what AWS would
refuse. Nothing here knows Volcano, an operator or a team's pods: those are `infra/kubernetes/`, on any cluster.
"""
