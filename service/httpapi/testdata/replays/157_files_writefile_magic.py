%%writefile helper_notes.txt
# notes, kept for the next cell
first line
second line
third line
