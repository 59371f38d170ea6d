# why: payroll
bonus = {"ana": 200, "cy": 50}
hours = [("ana", 40), ("bo", 38), ("cy", 20), ("di", 12)]
rate = 25
payroll = {}
for name, worked in hours:
    payroll[name] = worked * rate + bonus.get(name, 0)
total = sum(payroll.values())
