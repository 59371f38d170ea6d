# Notebooks with lines that are not Python. A line "# ## TITLE" begins a notebook, which runs in a sandbox of its own.
# testdata/notebook/exercises.py explains the other annotations; "prints" is a part of stdout.

# ## the head of many notebooks
# %% settings
%matplotlib inline
%config InlineBackend.figure_format = 'retina'
%load_ext autoreload
%autoreload 2
import numpy as np
import pandas as pd
np.arange(3).sum()
# -> 3
# %% a magic in the middle
x = 5
%matplotlib notebook
x + 1
# -> 6

# ## timing of a line
# %% an expression
%time sum(range(100))
# -> 4950
# prints: Wall time:
# %% a statement
%time total = sum(range(10))
total
# -> 45
# prints: CPU times:
# %% its variables
total
# -> 45
# %% in a block
for n in range(2):
    %time y = n
y
# -> 1
# prints: Wall time:

# ## timing of a cell
# %% with a value
%%time
a = 1
a + 1
# -> 2
# prints: Wall time:
# %% hidden
%%time
a + 1;
# prints: Wall time:
# %% with await
%%time
import asyncio
await asyncio.sleep(0, 'done')
# -> "done"
# prints: CPU times:
# %% not on the first line
a = 3
%%time
a
# fails: SyntaxError at 2: must be on the first line

# ## repeated timing
# %% a line
%timeit -n 2 -r 2 sum(range(10))
# prints: 2 runs, 2 loops each
# %% a cell with a preparation
%%timeit -n 2 -r 1 numbers = list(range(10))
numbers.sort()
# prints: 1 run, 2 loops each
# %% its names stay out of the session
"numbers" in dir()
# -> false

# ## packages
# %% installed
%pip install pandas
# prints: pandas
# %% by the shell
!pip install --quiet numpy "scipy>=1"
# prints: scipy
# %% missing
!pip install torch
# prints: glasshouse env add torch
# %% by its module's name
%pip install skimage
# prints: scikit-image
# %% of Python itself
%pip install json
# prints: json is part of Python
# %% list
%pip list
# prints: pandas==

# ## shell
# %% not available
!wget https://example.com/data.csv
# fails: SyntaxError at 1: use requests
# %% in a block, after code
if True:
    print("never printed")
    !rm -rf data
# fails: SyntaxError at 3: the shell command 'rm'
# %% as a value
files = !ls
# fails: SyntaxError at 1: cannot be a value
# %% list
from pathlib import Path
Path("b.txt").write_text("b")
!ls
# prints: b.txt
# -> null
# %% folder
%pwd
# -> "/session"
# %% a shell cell
%%bash
ls
# fails: SyntaxError at 1: a sandbox starts no processes

# ## text that looks like a command
# %% in a string
text = """
%matplotlib inline
!ls
%%time
"""
text.count("\n")
# -> 4
# %% in brackets, and after a backslash
a, b = 7, 4
c = (a
%b)
d = a \
%b
[c, d, a %b, a != b]
# -> [3, 3, 3, true]
# %% beside a command
%matplotlib inline
e = [a
%b,
"""
!x
"""]
e
# -> [3, "\n!x\n"]
# %% formats
"%d%%" % 5
# -> "5%"

# ## unknown commands
# %% a magic
%prun sum(range(10))
# fails: SyntaxError at 1: use %time, or %timeit
# %% another
x = 1
%nonsense
# fails: SyntaxError at 2: %lsmagic lists the commands
# %% SQL
%%sql
select 1
# fails: SyntaxError at 1: await db_query
# %% nothing of the cell has run
x
# fails: NameError at 1: name 'x' is not defined

# ## errors keep their lines
# %% at a command
%matplotlib inline

%time 1 / 0
# fails: ZeroDivisionError at 3: division by zero
# %% below commands
!pip list
%matplotlib inline
undefined
# prints: numpy==
# fails: NameError at 3: undefined
# %% in a timed cell
%%time
a = 1
a.missing
# fails: AttributeError at 3: missing
# %% of syntax
%matplotlib inline
a = = 1
# fails: SyntaxError at 2: invalid syntax
# %% of the import rules
%matplotlib inline
%time import os
# fails: PolicyError at 2: import of os

# ## captured output
# %% all of it
%%capture kept
print("inside")
import matplotlib.pyplot as plt
plt.plot([1, 2])
# %% shown later
kept.show()
# stdout: inside
# shown: image/png
# %% its text
kept.stdout
# -> "inside\n"
# %% no name
%%capture
print("lost")

# ## files
# %% written
%%writefile numbers.csv
n
1
2
# prints: Writing numbers.csv
# %% appended
%%writefile -a numbers.csv
3
# prints: Appending to numbers.csv
# %% read
import pandas as pd
pd.read_csv("numbers.csv")["n"].tolist()
# -> [1, 2, 3]
# %% a module
%%writefile helper.py
def double(x):
    return 2 * x
# prints: Writing
# %% imported
import helper
helper.double(4)
# -> 8

# ## cells of another language
# %% HTML
%%html
<b>bold</b>
# shown: text/html
# %% Markdown
%%markdown
**bold**
# shown: text/markdown
# %% LaTeX
%%latex
$x^2$
# shown: text/latex

# ## questions
# %% a function
len?
# prints: Return the number of items
# %% a variable
value = [1, 2]
value?
# prints: list
# %% something unknown
nothing?
# prints: not found

# ## variables
# %% none
%who
# prints: no variables
# %% names
apple, pear = 1, "p"
%who
# prints: apple
# %% table
%whos
# prints: pear             str
# %% commands
%lsmagic
# prints: %%writefile

# ## semicolons
# %% a number
5;
# %% two statements
x = 1; x
# -> 1
# %% in a comment
x  # ;
# -> 1
# %% in a string
"a;"
# -> "a;"
# %% a table
import pandas as pd
df = pd.DataFrame({"a": [1]})
df;
# %% __result__ stays
__result__ = 2
df;
# -> 2

# ## an exported notebook
# %% calls
get_ipython().run_line_magic("matplotlib", "inline")
get_ipython().run_cell_magic("time", "", "y = 3\n")
y
# -> 3
# prints: Wall time:
# %% imported shell
from IPython import get_ipython
get_ipython().system("pip list")
# prints: pandas==
# %% of an unknown magic
get_ipython().run_line_magic("nonsense", "")
# fails: SyntaxError at 1: not a command
