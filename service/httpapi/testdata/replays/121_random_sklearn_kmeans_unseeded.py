from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
X, _ = make_blobs(n_samples=150, centers=4, cluster_std=1.6)
km = KMeans(n_clusters=4, n_init=2).fit(X)
print(km.cluster_centers_.round(4))
print("inertia", km.inertia_, "iterations", km.n_iter_)
km.labels_[:12]
