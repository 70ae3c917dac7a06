-- Figure 6 of 004: what users click on teaches how to rank. For most searches that is not urgent; for
-- those that found news it is. The workflow would be pointless if all of it were of one moment.

CREATE STREAMING TABLE searches COMMENT 'Who searched for what, was shown which link, and clicked on it or not'
  TBLPROPERTIES ('springhouse.period' = '30 minutes')
  AS SELECT offset AS id, concat('query ', pmod(hash(offset), 5000)) AS query,
            concat(if(offset % 50 = 0, 'news', 'site'), pmod(hash(offset, 1), 40), '.com/', offset) AS shown,
            pmod(hash(offset, 2), 3) = 0 AS clicked
  FROM STREAM sample(rate => '3');

-- The split: one part is small and urgent, the other one large and patient.

CREATE MATERIALIZED VIEW news COMMENT 'Searches that found news'
  AS SELECT id, query, shown, clicked FROM searches WHERE shown LIKE 'news%';

CREATE MATERIALIZED VIEW other COMMENT 'Searches that found none'
  TBLPROPERTIES ('springhouse.staleness' = '1 day')
  AS SELECT id, query, shown, clicked FROM searches WHERE shown NOT LIKE 'news%';

-- bound_staleness(output, 0, 0), bound_staleness(output, 1, 1 day)

CREATE MATERIALIZED VIEW feedback COMMENT 'What the ranking learns from'
  TBLPROPERTIES ('springhouse.staleness.news' = '0 seconds', 'springhouse.staleness.other' = '1 day')
  AS SELECT id, query, shown, clicked, true AS is_news FROM news
     UNION ALL SELECT id, query, shown, clicked, false AS is_news FROM other;
