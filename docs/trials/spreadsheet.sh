#!/bin/sh
# From people.csv to a report and an Excel file. It is explained in spreadsheet.md.
set -e
sottovoce survey people.csv -o survey.toml
sottovoce plan survey.toml -o plan.json
sottovoce whisper plan.json people.csv -o reports.parquet --ignore '*'
sottovoce estimate plan.json reports.parquet --k 2 --csv tables --xlsx tables.xlsx
sottovoce report plan.json reports.parquet -o report.html
