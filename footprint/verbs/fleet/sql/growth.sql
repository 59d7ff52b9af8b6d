-- What grew between two days, builds or package versions (--from, --to)?
-- {owner} of {program} grew most: {each_bytes} a process, {growth_bytes} in all.
WITH matched AS (
    SELECT side,
           coalesce(new_program, program) AS program,
           coalesce(new_owner, owner) AS owner,
           coalesce(matched_symbols.name, symbol) AS symbol,
           sum(private_bytes) AS private_bytes
    FROM compared_amounts
    LEFT JOIN matched_owners USING (side, program, owner)
    LEFT JOIN matched_symbols USING (symbol)
    GROUP BY ALL
),
counts AS (
    SELECT coalesce(new_program, program) AS program,
           coalesce(sum(process_count) FILTER (side = 'old'), 0) AS old_count,
           coalesce(sum(process_count) FILTER (side = 'new'), 0) AS new_count
    FROM compared_processes LEFT JOIN (SELECT DISTINCT side, program, new_program FROM matched_owners) USING (side, program)
    GROUP BY ALL
),
held AS (
    SELECT program, owner, symbol,
           coalesce(sum(private_bytes) FILTER (side = 'old') / any_value(old_count), 0) AS old_bytes,
           coalesce(sum(private_bytes) FILTER (side = 'new') / any_value(new_count), 0) AS new_bytes,
           any_value(old_count) AS old_count,
           any_value(new_count) AS new_count
    FROM matched JOIN counts USING (program)
    GROUP BY program, owner, symbol
)
SELECT round((new_bytes - old_bytes) * new_count)::HUGEINT AS growth_bytes,
       round(new_bytes - old_bytes)::BIGINT AS each_bytes,
       CASE WHEN old_count > 0 THEN round(old_bytes)::BIGINT END AS old_bytes,
       round(new_bytes)::BIGINT AS new_bytes,
       new_count AS process_count,
       symbol,
       owner,
       program
FROM held
WHERE new_count > 0 AND new_bytes > old_bytes
ORDER BY growth_bytes DESC, program, owner, symbol
LIMIT 10000;
