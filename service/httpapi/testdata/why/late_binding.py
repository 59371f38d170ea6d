# why: total
# line: 7
# words: reads rate when it is called; the last rate
# Each function has the last rate.
discounts = []
for rate in (0.1, 0.2, 0.3):
    discounts.append(lambda price: price * rate)
total = sum(discount(100) for discount in discounts)
