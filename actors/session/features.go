package session

import (
	"context"
	"encoding/json"

	sessionv1 "github.com/vak-actors/vak-actors/messages/vak/session/v1"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/actorkit"
	"github.com/vak-actors/vak-actors/internal/dispatch"
	"github.com/vak-actors/vak-actors/internal/turn"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// listFeatures answers which prompts or resources of servers the session could use now, in an effect like listTools.
func (s *session) listFeatures(c *actorkit.Context, m *sessionv1.ListFeatures, by command) {
	s.inEffect(c, by, func(ctx context.Context, a *dispatch.Admission) (any, error) {
		definitions, err := a.Features(m.GetKind(), m.GetServer())
		if err != nil {
			return nil, err
		}
		if m.GetKind() == turn.FeatureResources && m.GetServer() == "" {
			definitions = append(definitions, s.skillResources(ctx, a)...)
		}
		text, err := json.Marshal(definitions)
		if err != nil {
			return nil, vakerr.New(vakerr.Internal, "what servers offer cannot be written").WithCause(err)
		}
		return &sessionv1.ListFeaturesResult{
			FeaturesJson: text, Digest: capability.ContentDigest(text), Epoch: uint64(a.Epoch),
		}, nil
	})
}

// inEffect answers a question about what the session may do now, off its own goroutine.
func (s *session) inEffect(c *actorkit.Context, by command, answer func(ctx context.Context, a *dispatch.Admission) (any, error)) {
	c.Go(func(ctx context.Context) any {
		view := s.Gate.View()
		if view.Policy == nil {
			by.reply.Reply(notReady())
			return nil
		}
		result, err := answer(ctx, s.admission(view))
		if err != nil {
			by.reply.Reply(err)
			return nil
		}
		by.reply.Reply(result)
		return nil
	})
}

// loadable are the skills that the session's model may load without anybody being asked.
func loadable(a *dispatch.Admission) []*capability.Capability {
	var all []*capability.Capability
	for _, name := range a.SkillNames() {
		if c, ok := a.Skill(name); ok && a.MayLoad(c.ID.Name) {
			all = append(all, c)
		}
	}
	return all
}

// skillResources are the skills as resources; none where they cannot be read.
func (s *session) skillResources(ctx context.Context, a *dispatch.Admission) []json.RawMessage {
	entries, err := s.Skills.List(ctx, loadable(a))
	if err != nil {
		return nil
	}
	var all []json.RawMessage
	for _, e := range entries {
		if text, err := json.Marshal(e.Resource()); err == nil {
			all = append(all, text)
		}
	}
	return all
}

// readSkill answers what a client of the skills extension asks.
func (s *session) readSkill(c *actorkit.Context, m *sessionv1.ReadSkill, by command) {
	s.inEffect(c, by, func(ctx context.Context, a *dispatch.Admission) (result any, err error) {
		var shown any
		switch skills := loadable(a); m.GetWhat() {
		case "list":
			shown, err = s.Skills.List(ctx, skills)
		case "entry":
			shown, err = s.Skills.Entry(ctx, skills, m.GetUri())
		case "file":
			content, failure := s.Skills.Read(ctx, skills, m.GetUri())
			shown, err = map[string]any{"contents": []any{content}}, failure
		case "folder":
			shown, err = s.Skills.Folder(ctx, skills, m.GetUri())
		default:
			err = vakerr.New(vakerr.InvalidRequest, "nothing of a skill is called %.32q", m.GetWhat()).WithRemedy("ask for list, entry, file or folder")
		}
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(shown)
		if err != nil {
			return nil, vakerr.New(vakerr.Internal, "a skill cannot be written").WithCause(err)
		}
		return &sessionv1.ReadSkillResult{ResultJson: text}, nil
	})
}
