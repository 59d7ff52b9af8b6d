-- Which processes cost far more than their siblings of the same program?
-- {program} on {host} (pid {pid}): {excess_bytes} more than the median of its siblings, most of it in {owner}.
WITH single AS (
    SELECT * FROM current_processes WHERE process_count = 1 AND cost_bytes IS NOT NULL
),
siblings AS (
    SELECT program, count(*) AS sibling_count, median(cost_bytes) AS median_bytes,
           quantile_cont(cost_bytes, 0.75) - quantile_cont(cost_bytes, 0.25) AS spread_bytes
    FROM single GROUP BY program HAVING count(*) >= 5
),
outliers AS (
    SELECT processes.audit, host, pid, program, cost_bytes, median_bytes, sibling_count,
           cost_bytes - median_bytes AS excess_bytes
    FROM single AS processes JOIN siblings USING (program)
    WHERE cost_bytes - median_bytes > greatest(1048576, median_bytes / 2, 5 * spread_bytes)
),
owned AS MATERIALIZED (
    SELECT audit, program, owner, coalesce(private_bytes, 0) + kernel_bytes AS private_bytes
    FROM current_owners SEMI JOIN single USING (audit) WHERE program IN (SELECT program FROM outliers)
),
usual AS (
    SELECT program, owner, sum(private_bytes) / any_value(sibling_count) AS mean_bytes
    FROM owned JOIN siblings USING (program) GROUP BY program, owner
),
held AS (
    SELECT * FROM owned SEMI JOIN outliers USING (audit)
),
largest AS (
    SELECT audit, arg_max(owner, private_bytes - mean_bytes) AS owner
    FROM held JOIN usual USING (program, owner) GROUP BY audit
)
SELECT excess_bytes::BIGINT AS excess_bytes,
       cost_bytes AS per_process_bytes,
       median_bytes::BIGINT AS median_bytes,
       sibling_count,
       pid,
       host,
       owner,
       program
FROM outliers LEFT JOIN largest USING (audit)
ORDER BY excess_bytes DESC, host, pid;
