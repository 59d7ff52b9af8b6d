-- What do the processes of each host cost?
-- {host} holds most: {total_bytes} in {process_count} processes.
SELECT sum(cost_bytes) AS total_bytes,
       sum(private_bytes) AS private_bytes,
       sum(kernel_bytes) AS kernel_bytes,
       any_value(memory_bytes) AS memory_bytes,
       any_value(available_bytes) AS available_bytes,
       sum(process_count) AS process_count,
       host
FROM current_processes LEFT JOIN current_hosts USING (host)
GROUP BY host
ORDER BY total_bytes DESC NULLS LAST, host;
