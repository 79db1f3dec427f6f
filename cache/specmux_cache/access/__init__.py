"""How a server is reached, and as whom: kubeconfigs, a pod's service account, proxies, credentials.

The only readers of them: the service, the commands and the clients see the same server in the same file.
"""
