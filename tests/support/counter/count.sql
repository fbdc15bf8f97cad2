-- step: count one on, if the term holds
WITH {fence}
INSERT INTO harvest.count AS counted (name, number)
SELECT %(name)s, 1 FROM fence
    ON CONFLICT (name) DO UPDATE SET number = counted.number + 1

-- set: begin at a number
INSERT INTO harvest.count (name, number) VALUES (%(name)s, %(number)s)
    ON CONFLICT (name) DO UPDATE SET number = EXCLUDED.number
