# why: answer
def ways(n, memo={}):
    if n in memo:
        return memo[n]
    if n <= 1:
        return 1
    memo[n] = ways(n - 1) + ways(n - 2)
    return memo[n]
first = ways(10)
answer = ways(25)
