-- Who owns the private memory: objects, heap, stacks, other memory?
-- {owner} owns most: {private_bytes} in {process_count} processes.
WITH held AS (
    SELECT audit, owner, sum(private_bytes) AS private_bytes
    FROM current_rows WHERE kind <> 'kernel' AND private_bytes IS NOT NULL GROUP BY audit, owner
)
SELECT sum(held.private_bytes)::BIGINT AS private_bytes,
       (sum(held.private_bytes) / sum(process_count))::BIGINT AS mean_bytes,
       sum(process_count)::BIGINT AS process_count,
       owner
FROM held JOIN current_processes USING (audit)
GROUP BY owner
ORDER BY private_bytes DESC, owner;
