"""The shop of the thesis (chapter 7): it knows what each customer spent, and nothing else of them.

Age, salary and state are whispered; the amount of a purchase travels in clear beside the whisper.
An analyst then asks ordinary SQL. Run it with: python examples/shop.py
"""

from __future__ import annotations

import numpy as np

import sottovoce as sv

PEOPLE = 50_000
EPSILON = 2.0
STATES = ["CA", "NY", "TX", "WA"]
QUERIES = (
    "SELECT COUNT(*) FROM customers WHERE age BETWEEN 30 AND 40",
    "SELECT state, SUM(amount), AVG(amount) FROM customers WHERE age BETWEEN 30 AND 40 "
    "GROUP BY state",
    "SELECT channel, COUNT(*), AVG(amount) FROM customers WHERE salary >= 100000 OR age < 25 "
    "GROUP BY channel ORDER BY channel",
    "SELECT AVG(age), MEDIAN(age), STDDEV(amount) FROM customers WHERE amount > 20",
)


def customers(people: int, seed: int) -> dict[str, object]:
    """Made-up people: older ones earn more, and who earns more spends more."""
    draws = np.random.default_rng(seed)
    age = np.clip(draws.normal(42, 14, people), 18, 81).astype(int)
    salary = np.clip(draws.gamma(4, 400 * (age - 5), people), 0, 199_999).astype(int)
    spent = np.clip(draws.gamma(2, 5 + salary / 10_000, people), 0, 499.99)
    return {
        "age": age,
        "salary": salary,
        "state": draws.choice(STATES, people, p=[0.4, 0.3, 0.2, 0.1]),
        "channel": draws.choice(["shop", "web"], people),
        "amount": [f"{each:.2f}" for each in spent],
    }


def survey(people: int) -> sv.Plan:
    """What is whispered and what is public; everybody can read it."""
    schema = sv.Schema(
        age=sv.Ordinal(18, 81),
        salary=sv.Ordinal(0, 199_999, bins=64),
        state=sv.Categorical(STATES),
        channel=sv.Categorical(["shop", "web"], sensitive=False),
        amount=sv.Number(0, 500, step="0.01", sensitive=False),
    )
    question = sv.Queries(["age", "salary", "state"], measures=["amount"])
    return sv.plan(schema, question, epsilon=EPSILON, people=people, public=["channel"])


def main(people: int = PEOPLE, seed: int = 1) -> list[object]:
    """Plan, whisper, ask; prints the answers and returns them."""
    plan = survey(people)
    print(plan)
    # devices do this one by one, with coins of their own; here all are simulated
    reports = sv.simulate(plan, customers(people, seed), seed=seed)
    answers: list[object] = []
    for sql in QUERIES:
        answer = sv.query(plan, reports, sql)
        print(f"\n{sql}\n{answer}")
        answers.append(answer)
    print(f"\n{answers[1].explain()}")  # type: ignore[attr-defined]
    return answers


if __name__ == "__main__":
    main()
