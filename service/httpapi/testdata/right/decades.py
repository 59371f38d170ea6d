# why: by_decade
films = [("Alien", 1979), ("Heat", 1995), ("Dune", 2021), ("Blade Runner", 1982), ("Fargo", 1996), ("Aliens", 1986)]
by_decade = {}
for title, year in films:
    decade = year // 10 * 10
    by_decade[decade] = by_decade.get(decade, 0) + 1
seconds = 7384
hours = seconds // 3600
minutes = seconds % 3600 // 60
label = f"{hours}:{minutes:02d}"
