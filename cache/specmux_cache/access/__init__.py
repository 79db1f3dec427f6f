"""How to reach a server, and as whom: kubeconfigs, a pod's service account, proxies, credentials.

These are the only parsers: service, commands and clients read the same server from the same file.
"""
