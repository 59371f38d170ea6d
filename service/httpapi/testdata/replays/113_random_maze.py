import random

W, H = 21, 9
g = [["█"] * W for _ in range(H)]
def carve(x, y):
    g[y][x] = " "
    dirs = [(2, 0), (-2, 0), (0, 2), (0, -2)]
    random.shuffle(dirs)
    for dx, dy in dirs:
        nx, ny = x + dx, y + dy
        if 0 < nx < W and 0 < ny < H and g[ny][nx] == "█":
            g[y + dy // 2][x + dx // 2] = " "
            carve(nx, ny)
carve(1, 1)
print("\n".join("".join(r) for r in g))
