-- Who owns the private memory: objects, heap, stacks, other memory?
-- {owner} owns most: {private_bytes} in {process_count} processes.
SELECT sum(private_bytes) AS private_bytes,
       (sum(private_bytes) / sum(process_count))::BIGINT AS mean_bytes,
       sum(process_count) AS process_count,
       owner
FROM current_owners WHERE private_bytes IS NOT NULL
GROUP BY owner
ORDER BY private_bytes DESC, owner;
