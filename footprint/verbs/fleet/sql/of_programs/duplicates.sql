-- Which copies of statics and tables of addresses cost the programs most?
-- {subject} ({rule}): {saving_bytes} with one process of each of {program_count} programs, such as {program}.
SELECT * FROM program_savings
WHERE rule IN ('duplicate-static', 'linked-twice', 'relocated-tables')
ORDER BY saving_bytes DESC, subject, rule;
