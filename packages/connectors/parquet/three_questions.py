"""Three questions about the conversations of a window, answered by DuckDB from one Parquet file.

Cells begin with # %%, as in editors and Jupyter (jupytext). Run whole: EXPORT_API_URL and EXPORT_API_KEY in the
environment, `pip install duckdb`, `python three_questions.py 2026-10-04 2026-10-11`. Both dates are days of UTC. In a
notebook write them into the first cell: there the arguments are those of the kernel.
"""

# %% The file: a download that breaks off is an error, and the file of an earlier run stays.
import os
import shutil
import sys
import urllib.error
import urllib.parse
import urllib.request

import duckdb

since, to = "2026-10-04", "2026-10-11"
if sys.argv[0].endswith("three_questions.py"):
    if len(sys.argv) != 3:
        sys.exit("usage: python three_questions.py FIRST_DAY DAY_AFTER_THE_LAST, such as 2026-10-04 2026-10-11")
    since, to = sys.argv[1:]
window = urllib.parse.urlencode({"created_since": f"{since}T00:00:00Z", "created_to": f"{to}T00:00:00Z"})
request = urllib.request.Request(
    f"{os.environ['EXPORT_API_URL'].rstrip('/')}/v2/export/conversations?{window}",
    headers={
        "Authorization": f"Bearer {os.environ['EXPORT_API_KEY']}",
        "Accept": "application/vnd.apache.parquet",
    },
)
try:
    with urllib.request.urlopen(request) as answer, open("conversations.parquet.part", "wb") as file:
        shutil.copyfileobj(answer, file)
        # urllib takes an answer that ends too early for whole.
        if file.tell() != int(answer.headers.get("Content-Length", file.tell())):
            sys.exit("the answer is not whole: run this again")
    os.replace("conversations.parquet.part", "conversations.parquet")
except urllib.error.HTTPError as error:
    # What the service says about it.
    sys.exit(f"{error}: {ascii(error.read(500).decode(errors='replace'))}")

connection = duckdb.connect()
connection.execute("SET TimeZone = 'UTC'")
connection.execute("CREATE VIEW conversations AS FROM 'conversations.parquet' WHERE is_test_user IS NOT true")
if not connection.sql("SELECT 1 FROM conversations LIMIT 1").fetchall():
    print(f"No conversation began from {since} to {to}, that day excluded.")

# %% How many conversations does a day have, and how many of them stay with the bot?
print("Conversations by day")
for day, conversations, contained in connection.sql("""
    SELECT date_created::DATE, count(*), round(100 * avg((is_escalated IS NOT true)::INT))
    FROM conversations GROUP BY ALL ORDER BY ALL
""").fetchall():
    print(f"{day}  {conversations:>6}  {contained:.0f}% without escalation")

# %% Why does the bot hand over? Of each conversation the file has the latest attempt of each handoff.
print("Handoffs by reason")
for reason, handoffs, succeeded in connection.sql("""
    SELECT coalesce(h.reason_code, 'not recorded'), count(*), countif(h.outcome_status = 'succeeded')
    FROM conversations, unnest(handoffs) AS t(h) GROUP BY ALL ORDER BY count(*) DESC, 1
""").fetchall():
    print(f"{reason:<24}  {handoffs:>6}  {succeeded} succeeded")

# %% How content are people, by language? Objects of any form, such as csat, are JSON text.
print("Satisfaction by language")
for language, answers, score in connection.sql("""
    SELECT coalesce(language, 'unknown'), count(score), avg(score)
    FROM (SELECT language, try_cast(csat->>'score' AS DOUBLE) AS score FROM conversations)
    WHERE score IS NOT NULL GROUP BY ALL ORDER BY count(score) DESC, 1
""").fetchall():
    print(f"{language:<24}  {answers:>6}  {score:.2f}")
