import calendar
from datetime import date

t = date.today()
print(calendar.TextCalendar(firstweekday=0).formatmonth(t.year, t.month))
fridays = [w[4] for w in calendar.monthcalendar(t.year, t.month) if w[4]]
print("Fridays:", fridays, "leap year:", calendar.isleap(t.year))
first, n = calendar.monthrange(t.year, t.month)
f"{n - t.day} days left in {calendar.month_name[t.month]}"
