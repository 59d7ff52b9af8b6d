-- Which unused libraries cost the programs most?
-- Nothing uses {subject}: {saving_bytes} with one process of each of {program_count} programs, such as {program}.
SELECT * FROM program_savings
WHERE rule IN ('unused-library', 'stub-library')
ORDER BY saving_bytes DESC, subject, rule;
