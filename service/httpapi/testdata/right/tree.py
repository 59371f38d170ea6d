# why: tree
paths = ["etc/hosts", "etc/ssl/certs", "usr/bin/python", "usr/lib", "etc/ssl/private"]
tree = {}
for path in paths:
    node = tree
    for part in path.split("/"):
        node = node.setdefault(part, {})
def depth(node):
    return 1 + max((depth(child) for child in node.values()), default=0)
deepest = depth(tree) - 1
