"""Tuples of values that people hold: listed, limited by a fair draw, and counted.

A row is an ascending list of values. ``after[x]`` is the first value that may stand beside ``x`` in
a tuple: the first one of the next attribute, or of sets the next item. Tuples found so far are the
nodes of a trie: the values themselves come first, and ``node * size + value`` leads to a child.
What is counted has such a key too: that of its first k - 1 values, and its last one.
"""

from __future__ import annotations

import numpy as np

from sottovoce.kernels.compiled import njit

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # of Fibonacci hashing
_SPARE_WORDS = 16  # beyond those that a person's draw takes, for words that must be drawn anew


@njit(cache=True, nogil=True, inline="always")
def _slot(keys, key):  # type: ignore[no-untyped-def]
    """Where a key stands in a hash table, or would; empty slots hold -1."""
    mask = np.uint64(keys.size - 1)
    mixed = np.uint64(key) * _MULTIPLIER
    slot = (mixed ^ (mixed >> np.uint64(32))) & mask
    while keys[slot] != key and keys[slot] != -1:
        slot = (slot + np.uint64(1)) & mask
    return slot


@njit(cache=True, nogil=True)
def hash_table(keys, values, capacity):  # type: ignore[no-untyped-def]
    """A hash table of different keys; ``capacity`` is a power of two above their number."""
    table_keys = np.full(capacity, -1, np.int64)
    table_values = np.zeros(capacity, np.int64)
    for index in range(keys.size):
        slot = _slot(table_keys, keys[index])
        table_keys[slot] = keys[index]
        table_values[slot] = values[index]
    return table_keys, table_values


@njit(cache=True, nogil=True)
def looked_up(table_keys, table_values, keys, missing):  # type: ignore[no-untyped-def]
    """The values of many keys, ``missing`` where a key is not in the table."""
    found = np.empty(keys.size, np.int64)
    for index in range(keys.size):
        slot = _slot(table_keys, keys[index])
        found[index] = table_values[slot] if table_keys[slot] == keys[index] else missing
    return found


@njit(cache=True, nogil=True)
def _with_room(buffer, filled, more):  # type: ignore[no-untyped-def]
    """The buffer, or a larger copy of it if it lacks room."""
    if filled + more <= buffer.size:
        return buffer
    wider = np.empty(2 * (filled + more), np.int64)
    wider[:filled] = buffer[:filled]
    return wider


@njit(cache=True, nogil=True)
def _list_ends(row, place, node, after, extensions, first_node, buffer, filled):  # type: ignore[no-untyped-def]
    """Append the keys of a node's extensions by values of a row that stand after a place."""
    size = after.size
    lowest = after[row[place]]
    is_restricted = extensions.shape[0] > 0
    for last in range(place + 1, row.size):
        other = row[last]
        if other < lowest:
            continue
        if is_restricted:
            word = extensions[node - first_node, other >> 6]
            if (word >> np.uint64(other & 63)) & np.uint64(1) == 0:
                continue
        buffer[filled] = node * size + other
        filled += 1
    return filled


@njit(cache=True, nogil=True)
def _list_row(row, depth, after, nodes, node_of, extensions, first_node, buffer, filled):  # type: ignore[no-untyped-def]
    """Append the keys of a row's candidate tuples of ``depth`` values.

    Args:
        row: ascending values.
        depth: how many values a tuple has.
        after: see the module's text.
        nodes: keys of the trie's hash table.
        node_of: its values.
        extensions: bits, for each node of depth - 1 values those that it may be extended by; no
            rows if it may be extended by all.
        first_node: the node of the first row of ``extensions``.
        buffer: of keys.
        filled: how many of them are filled.

    Returns:
        The buffer, which may have grown, and how many keys it holds.
    """
    size = after.size
    if depth == 1:
        buffer = _with_room(buffer, filled, row.size)
        for place in range(row.size):
            buffer[filled] = row[place]
            filled += 1
        return buffer, filled
    places = np.zeros(depth, np.int64)
    path = np.zeros(depth, np.int64)
    level = 0
    while level >= 0:
        place = places[level]
        if place >= row.size:
            level -= 1
            if level >= 0:
                places[level] += 1
            continue
        value = row[place]
        if level == 0:
            path[0] = value
        else:
            if value < after[row[places[level - 1]]]:
                places[level] += 1
                continue
            key = path[level - 1] * size + value
            slot = _slot(nodes, key)
            if nodes[slot] != key:
                places[level] += 1
                continue
            path[level] = node_of[slot]
        if level < depth - 2:
            level += 1
            places[level] = place + 1
            continue
        buffer = _with_room(buffer, filled, row.size)
        filled = _list_ends(row, place, path[level], after, extensions, first_node, buffer, filled)
        places[level] += 1
    return buffer, filled


@njit(cache=True, nogil=True)
def _list_person(  # type: ignore[no-untyped-def]
    person, people, rows, values, depth, after, nodes, node_of, extensions, first_node, buffer
):
    """All different candidate tuples of a person, as keys at the front of the buffer."""
    filled = 0
    for row in range(people[person], people[person + 1]):
        buffer, filled = _list_row(
            values[rows[row] : rows[row + 1]],
            depth,
            after,
            nodes,
            node_of,
            extensions,
            first_node,
            buffer,
            filled,
        )
    if people[person + 1] - people[person] > 1 and filled > 1:
        ordered = np.sort(buffer[:filled])
        kept = 1
        buffer[0] = ordered[0]
        for place in range(1, filled):
            if ordered[place] != ordered[place - 1]:
                buffer[kept] = ordered[place]
                kept += 1
        filled = kept
    return buffer, filled


@njit(cache=True, nogil=True)
def _keep_some(buffer, filled, limit, words, used):  # type: ignore[no-untyped-def]
    """Move a uniform choice of ``limit`` keys to the front (Fisher and Yates), if there are more.

    Returns:
        How many words are used, or -1 if there were too few of them.
    """
    if filled <= limit:
        return used
    if used + limit + _SPARE_WORDS > words.size:
        return -1
    for place in range(limit):
        span = np.uint64(filled - place)
        # words from the largest multiple of span on are not used: they would favour low remainders
        excess = (np.uint64(0) - span) % span
        while True:
            if used == words.size:
                return -1
            word = words[used]
            used += 1
            if word <= ~np.uint64(0) - excess:
                break
        other = place + np.int64(word % span)
        kept = buffer[other]
        buffer[other] = buffer[place]
        buffer[place] = kept
    return used


@njit(cache=True, nogil=True)
def tuple_sizes(people, rows, values, depth, after, nodes, node_of, extensions, first_node):  # type: ignore[no-untyped-def]
    """How many candidate tuples each person holds; see :func:`_list_row` for the arguments."""
    sizes = np.empty(people.size - 1, np.int64)
    buffer = np.empty(1024, np.int64)
    for person in range(people.size - 1):
        buffer, filled = _list_person(
            person,
            people,
            rows,
            values,
            depth,
            after,
            nodes,
            node_of,
            extensions,
            first_node,
            buffer,
        )
        sizes[person] = filled
    return sizes


@njit(cache=True, nogil=True)
def count_tuples(  # type: ignore[no-untyped-def]
    people,
    rows,
    values,
    depth,
    after,
    nodes,
    node_of,
    extensions,
    first_node,
    limit,
    weights,
    words,
    start,
    keys,
    sums,
    filled_slots,
    first_key,
):
    """Add the weights of people's candidate tuples, at most ``limit`` of each person.

    Args:
        people: person i has the rows ``people[i]`` to ``people[i + 1]``.
        rows: row r has the values ``values[rows[r]:rows[r + 1]]``.
        values: ascending in each row.
        depth: and the five after it, see :func:`_list_row`.
        limit: of a person's tuples; a uniform choice of so many is kept.
        weights: of each tuple, by how many of a person are kept.
        words: uniform 64-bit words for these choices.
        start: the first person that is not yet counted.
        keys: of a hash table; none if sums are a plain array.
        sums: its values.
        filled_slots: how many keys it has.
        first_key: the key of the first sum of a plain array.

    Returns:
        The next person (there are too few words for her, if she is not past the last), keys, sums,
        and how many slots are filled.
    """
    buffer = np.empty(1024, np.int64)
    used = 0
    for person in range(start, people.size - 1):
        buffer, filled = _list_person(
            person,
            people,
            rows,
            values,
            depth,
            after,
            nodes,
            node_of,
            extensions,
            first_node,
            buffer,
        )
        used = _keep_some(buffer, filled, limit, words, used)
        if used < 0:
            return person, keys, sums, filled_slots
        filled = min(filled, limit)
        weight = weights[filled]
        if keys.size == 0:
            for place in range(filled):
                sums[buffer[place] - first_key] += weight
            continue
        for place in range(filled):
            slot = _slot(keys, buffer[place])
            if keys[slot] == -1:
                keys[slot] = buffer[place]
                filled_slots += 1
            sums[slot] += weight
            if 2 * filled_slots > keys.size:
                held = keys != -1
                keys, sums = hash_table(keys[held], sums[held], 2 * keys.size)
    return people.size - 1, keys, sums, filled_slots


@njit(cache=True, nogil=True)
def collect_tuples(  # type: ignore[no-untyped-def]
    people,
    rows,
    values,
    depth,
    after,
    nodes,
    node_of,
    extensions,
    first_node,
    limit,
    words,
    start,
    sizes,
    kept,
):
    """List people's candidate tuples, at most ``limit`` of each; see :func:`count_tuples`.

    Args:
        sizes: how many tuples of each person are kept, which is filled.
        kept: room for the keys of those from ``start`` on.

    Returns:
        The next person, and how many keys were written.
    """
    buffer = np.empty(1024, np.int64)
    used = 0
    written = 0
    for person in range(start, people.size - 1):
        buffer, filled = _list_person(
            person,
            people,
            rows,
            values,
            depth,
            after,
            nodes,
            node_of,
            extensions,
            first_node,
            buffer,
        )
        used = _keep_some(buffer, filled, limit, words, used)
        if used < 0:
            return person, written
        filled = min(filled, limit)
        if written + filled > kept.size:
            return person, written
        for place in range(filled):
            kept[written] = buffer[place]
            written += 1
        sizes[person] = filled
    return people.size - 1, written


@njit(cache=True, nogil=True)
def extension_bits(subsets, later, size, rows_of, bits):  # type: ignore[no-untyped-def]
    """Which values extend each tuple so that all of its subtuples were found.

    Args:
        subsets: for each tuple the rows of ``rows_of`` of its subtuples, (tuples, k).
        later: for each tuple the first value that may follow its last one.
        size: how many values there are.
        rows_of: bits, for each subtuple the values that extend it to a found tuple.
        bits: (tuples, words), which is filled.

    Returns:
        How many extensions each tuple has.
    """
    counts = np.zeros(subsets.shape[0], np.int64)
    for index in range(subsets.shape[0]):
        for word in range(bits.shape[1]):
            common = ~np.uint64(0)
            for part in range(subsets.shape[1]):
                common &= rows_of[subsets[index, part], word]
            lowest = later[index] - 64 * word
            if lowest >= 64:
                common = np.uint64(0)
            elif lowest > 0:
                common &= ~np.uint64(0) << np.uint64(lowest)
            bits[index, word] = common
            while common:
                counts[index] += 1
                common &= common - np.uint64(1)
    return counts


@njit(cache=True, nogil=True)
def nth_bits(bits, rows, ranks):  # type: ignore[no-untyped-def]
    """The place of the set bit of each rank, counted from 0, in each row."""
    places = np.empty(rows.size, np.int64)
    for index in range(rows.size):
        left = ranks[index]
        places[index] = -1
        for word in range(bits.shape[1]):
            common = bits[rows[index], word]
            while common and left > 0:
                common &= common - np.uint64(1)
                left -= 1
            if common:
                place = 64 * word
                while common & np.uint64(1) == 0:
                    common >>= np.uint64(1)
                    place += 1
                places[index] = place
                break
    return places


@njit(cache=True, nogil=True)
def set_bits(rows, values, bits):  # type: ignore[no-untyped-def]
    """Set the bit of each value in its row."""
    for index in range(rows.size):
        bits[rows[index], values[index] >> 6] |= np.uint64(1) << np.uint64(values[index] & 63)
