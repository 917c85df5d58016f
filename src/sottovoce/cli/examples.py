"""One example of each command, as ``sottovoce --help`` prints them."""

from __future__ import annotations

# the sign \b keeps the lines as they are
EXAMPLES = """\b
Examples:
  sottovoce demo
  sottovoce studio
  sottovoce survey people.csv -o survey.toml
  sottovoce plan survey.toml -o plan.json
  sottovoce whisper plan.json people.csv -o reports.parquet
  sottovoce fold plan.json reports/ -o total.sva
  sottovoce estimate plan.json reports.parquet --marginal smoker,age --plot table.svg
  sottovoce report plan.json reports.parquet -o report.html
  sottovoce groups plan.json reports.parquet drinks --by smoker
  sottovoce change plan.json spring.parquet autumn.parquet --after-plan autumn.json
  sottovoce associate plan.json reports.parquet --pair smoker,age
  sottovoce tree plan.json reports.parquet --plot tree.svg
  sottovoce query plan.json reports.parquet "SELECT COUNT(*) FROM people WHERE age > 30"
  sottovoce sql plan.json reports.parquet
  sottovoce synthesize plan.json reports.parquet --people 10000 --seed 1 -o synthetic.csv
  sottovoce serve plan.json --store sqlite:///survey.db
  sottovoce send plan.json people.csv --to http://127.0.0.1:8700
  sottovoce info sqlite:///survey.db
  sottovoce ship sqlite:///survey.db --to s3://bucket/collected --every 60
  sottovoce fold-minutes plan.json s3://bucket/collected --every 60
  sottovoce audit plan.json
  sottovoce check-oracle mypackage:MyOracle
  sottovoce check-method calm
  sottovoce check-question survey.toml
  sottovoce advise survey.toml --error 0.01
  sottovoce methods marginals
  sottovoce oracles --size 64 --epsilon 1
  sottovoce compare oracles --size 64 --epsilon 0.5,1 --people 100000 --runs 10
  sottovoce compare marginals table.csv --k 3 --epsilon 0.5,1 --methods auto,calm
  sottovoce compare heavyhitters words.csv --value word --bytes 6 --top 32 --epsilon 2
  sottovoce compare itemsets baskets.parquet --column items --top 64 --epsilon 2
  sottovoce release table.csv --epsilon 1 --delta 1e-6 --up-to 3 -o release
  sottovoce compare releases table.csv --methods dp-marginals,auto --epsilon 0.5,1
  sottovoce amplify --oracle olh --size 1024 --local 4 --people 1000000 --delta 1e-9
  sottovoce compare shuffled table.csv --attribute age --epsilon 0.1,0.5 --people 100000
  sottovoce key new -o hop.key
  sottovoce shuffler plan.json --key hop.key --next http://127.0.0.1:8700 --close-after 3600
  sottovoce peos plan.json reports.parquet -o shuffled.parquet --least 1000
  sottovoce spotcheck plan.json people.csv --at http://127.0.0.1:8700
"""
