-- Who owns the private memory: objects, heap, stacks, other memory?
-- {owner} owns most: {private_bytes} in {process_count} processes.
WITH held AS (
    SELECT audit, owner, sum(private_bytes) AS private_bytes
    FROM current_rows WHERE kind <> 'kernel' GROUP BY audit, owner
)
SELECT sum(private_bytes)::BIGINT AS private_bytes,
       avg(private_bytes)::BIGINT AS mean_bytes,
       count(*) AS process_count,
       owner
FROM held
GROUP BY owner
ORDER BY private_bytes DESC NULLS LAST, owner;
