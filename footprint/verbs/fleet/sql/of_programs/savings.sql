-- What would a process of each program save with each remedy?
-- {subject} ({rule}): {saving_bytes} with one process of each of {program_count} programs, such as {program}.
SELECT * FROM program_savings
ORDER BY saving_bytes DESC, subject, rule;
