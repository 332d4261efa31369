CREATE TABLE IF NOT EXISTS @ (
    name    text COLLATE "C" PRIMARY KEY,
    fence   bigint NOT NULL,
    touched timestamptz NOT NULL DEFAULT now()
)

INSERT INTO @ AS f (name, fence) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET fence = GREATEST(f.fence, excluded.fence), touched = now()
RETURNING f.fence
