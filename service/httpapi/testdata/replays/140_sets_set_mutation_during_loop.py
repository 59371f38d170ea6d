inventory = {"bolts", "nuts", "screws", "washers", "gears"}
order = []
while inventory:
    item = inventory.pop()
    order.append(item)
    if len(item) == 5 and item + "2" not in order and not item.endswith("2"):
        inventory.add(item + "2")
print(" > ".join(order))
len(order)
