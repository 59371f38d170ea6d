# why: gross
# line: 7
# words: rate was 0.07; 0.19 now
# The rate is set again after it was used.
rate = 0.07
net = db_query("SELECT total::float AS total FROM orders WHERE id = 1")[0]["total"]
gross = net * (1 + rate)
rate = 0.19
