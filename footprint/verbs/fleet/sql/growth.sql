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
           sum(process_count) FILTER (side = 'old') AS old_count,
           sum(process_count) FILTER (side = 'new') AS new_count
    FROM compared_processes LEFT JOIN (SELECT DISTINCT side, program, new_program FROM matched_owners) USING (side, program)
    GROUP BY ALL
),
held AS (
    SELECT program, owner, symbol,
           coalesce(sum(private_bytes) FILTER (side = 'old'), 0) / any_value(old_count) AS old_bytes,
           coalesce(sum(private_bytes) FILTER (side = 'new'), 0) / any_value(new_count) AS new_bytes,
           any_value(new_count)::BIGINT AS process_count
    FROM matched JOIN counts USING (program)
    WHERE old_count > 0 AND new_count > 0
    GROUP BY program, owner, symbol
)
SELECT round((new_bytes - old_bytes) * process_count)::BIGINT AS growth_bytes,
       round(new_bytes - old_bytes)::BIGINT AS each_bytes,
       round(old_bytes)::BIGINT AS old_bytes,
       round(new_bytes)::BIGINT AS new_bytes,
       process_count,
       symbol,
       owner,
       program
FROM held
WHERE new_bytes > old_bytes
ORDER BY growth_bytes DESC, program, owner, symbol
LIMIT 10000;
