"""What runs on a cluster: thin stages around the library's objects, and the jobs made of them."""
