"""The ways to reach a server, and credentials: kubeconfigs, a pod's service account, proxies.

These are the only parsers: service, commands and clients read the same server from the same file.
"""
